"""EC2 in one region: calls through boto3, whose errors say what to do. boto3 is imported by the first call.

Credentials are found by boto3's own chain; nothing here reads, keeps or prints any. Throttled calls are repeated by
botocore.
"""

from __future__ import annotations

import functools
import importlib
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from steelyard.model.errors import LastingSiteError, SiteError
from steelyard.node.tasks import in_a_thread

Answer = Mapping[str, Any]
ATTEMPTS: Final = 8
CONNECT_TIMEOUT_S: Final = 10
FIRST_PAUSE_S: Final = 0.25
LONGEST_PAUSE_S: Final = 5.0
LONGEST_MESSAGE: Final = 300
PASSING: Final = (
    "InsufficientInstanceCapacity", "InternalError", "InternalFailure", "RequestLimitExceeded", "ServiceUnavailable",
    "SpotMaxPriceTooLow", "Throttling", "ThrottlingException", "Unavailable",
)  # fmt: skip
"""Codes of errors after which a study asks for other instances later."""
HINTS: Final[Mapping[str, str]] = {
    "AuthFailure": "check the credentials: `aws sts get-caller-identity`",
    "InvalidAMIID.NotFound": "site.image must be an AMI of this region",
    "InvalidGroup.NotFound": "site.security_group_ids must be groups of this region",
    "InvalidInstanceType": "site.instance_type must be a type of this region",
    "InvalidKeyPair.NotFound": "site.key_name must be a key pair of this region, or leave it and key_file out",
    "InvalidPlacementGroup.Unknown": "site.placement_group must be one of this region",
    "InvalidSubnetID.NotFound": "site.subnet_id must be a subnet of this region: a subnet is in one region only",
    "UnauthorizedOperation": "docs/howto/run-on-ec2.md lists the permissions that are needed",
    "VcpuLimitExceeded": "fewer or smaller instances, or ask AWS for a higher quota",
}
NO_CREDENTIALS: Final = "as for the AWS command line: `aws configure`, AWS_PROFILE, or a role of the machine"


@functools.cache
def _definitions() -> Any:
    """The definitions of AWS's services: megabytes, which each session would read again."""
    return importlib.import_module("botocore.loaders").create_loader()


def client_of(service: str, region: str, attempts: int) -> Any:
    """A client of boto3 in a region (empty: the default one). Raises LastingSiteError without boto3."""
    try:
        session, config = importlib.import_module("boto3.session"), importlib.import_module("botocore.config")
        core = importlib.import_module("botocore.session").Session()
        core.register_component("data_loader", _definitions())
    except ModuleNotFoundError as error:
        raise LastingSiteError("site ec2 needs boto3", "pip install 'steelyard[ec2]'") from error
    retries = {"mode": "standard", "total_max_attempts": attempts}
    return session.Session(region_name=region or None, botocore_session=core).client(
        service, config=config.Config(retries=retries, connect_timeout=CONNECT_TIMEOUT_S)
    )


def pauses(timeout_s: float) -> Iterator[float]:
    """Seconds between two looks, which grow, until the time is over."""
    deadline, pause_s = time.monotonic() + timeout_s, FIRST_PAUSE_S
    while time.monotonic() < deadline:
        yield pause_s
        pause_s = min(LONGEST_PAUSE_S, pause_s * 1.5)


class Cloud:
    """EC2 in one region."""

    def __init__(self, region: str, attempts: int = ATTEMPTS) -> None:
        self._region, self._attempts = region, attempts
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def region(self) -> str:
        """The region, also where boto3 chose it. Raises LastingSiteError if it finds none."""
        return self._region or str(self._client("ec2").meta.region_name)

    async def ask(self, operation: str, **words: Any) -> Answer:
        """The answer to a call. Raises SiteError, LastingSiteError where the same call would fail again."""
        return await in_a_thread(lambda: self.call(operation, **words))

    def call(self, operation: str, service: str = "ec2", **words: Any) -> Answer:
        """As `ask`, at once."""
        client = self._client(service)
        try:
            answer: Answer = getattr(client, operation)(**words)
        except Exception as error:
            raise self._in_our_words(error) from error
        return answer

    def _client(self, service: str) -> Any:
        with self._lock:
            if service not in self._clients:
                try:
                    self._clients[service] = client_of(service, self._region, self._attempts)
                except Exception as error:
                    raise self._in_our_words(error) from error
            return self._clients[service]

    def _in_our_words(self, error: Exception) -> Exception:
        """A SiteError for an error of boto3; any other as it is."""
        if isinstance(error, SiteError):
            return error
        known = importlib.import_module("botocore.exceptions")
        where = f"EC2 in {self._region}" if self._region else "EC2"
        if isinstance(error, known.ClientError):
            code, message = _code(error), str(error.response["Error"].get("Message", ""))[:LONGEST_MESSAGE]
            kind = SiteError if code in PASSING else LastingSiteError
            return kind(f"{where}: {message.strip().rstrip('.')} ({code})", HINTS.get(code, ""))
        if isinstance(error, known.NoRegionError):
            return LastingSiteError("boto3 finds no region", "site.region, such as eu-north-1")
        if isinstance(error, known.NoCredentialsError | known.PartialCredentialsError | known.ProfileNotFound):
            return LastingSiteError(f"boto3 finds no credentials for {where}", NO_CREDENTIALS)
        if isinstance(error, known.BotoCoreError):
            return SiteError(f"{where} does not answer: {str(error)[:LONGEST_MESSAGE]}", "check this machine's network")
        return error


def _code(error: Any) -> str:
    return str(error.response["Error"].get("Code", ""))

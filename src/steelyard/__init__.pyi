from steelyard.events.kept import QuietAwaited as QuietAwaited
from steelyard.events.kept import QuietReached as QuietReached
from steelyard.events.kept import StartBegan as StartBegan
from steelyard.events.kept import StartFailed as StartFailed
from steelyard.events.kept import TrialSealed as TrialSealed
from steelyard.events.shown import PhaseEntered as PhaseEntered
from steelyard.events.shown import StillBusy as StillBusy
from steelyard.events.shown import TrialBegan as TrialBegan
from steelyard.events.shown import Trouble as Trouble
from steelyard.lab.session import begin as begin
from steelyard.lab.session import measure as measure
from steelyard.model.errors import NotQuiet as NotQuiet
from steelyard.model.errors import SteelyardError as SteelyardError
from steelyard.report.notebook import read as read

__version__: str

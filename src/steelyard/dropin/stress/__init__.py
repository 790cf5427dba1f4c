"""`steelyard stress`: takes cassandra-stress's command lines as they stand, drives our agent, prints what
cassandra-stress prints.

    words -> grammar -> settings -> compiled (orders of the agent) -> action (schema, warm-up, load) -> output

What a command line means follows cassandra-stress 3.11.4; the words of messages and help are our own.
"""

from steelyard.dropin.stress.parse.refusal import Refused

__all__ = ["Refused"]

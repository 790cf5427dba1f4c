from steelyard.lab.session import begin as begin
from steelyard.lab.session import measure as measure
from steelyard.reading import read as read

__version__: str

from .estimates import Estimate as Estimate
from .measuring import CallSeconds as CallSeconds
from .planning import plan as plan
from .plans import Plan as Plan
from .plans import Planned as Planned
from .runs import simulate as simulate
from .settings import SimulationSettings as SimulationSettings
from .simulation import Simulation as Simulation

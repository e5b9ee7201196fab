from .estimates import Estimate as Estimate
from .measuring import CallSeconds as CallSeconds
from .planning import Plan as Plan
from .planning import Planned as Planned
from .planning import plan as plan
from .runs import Simulation as Simulation
from .runs import simulate as simulate
from .settings import SimulationSettings as SimulationSettings

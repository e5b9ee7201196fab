from .checkpoint import merge_checkpoints as merge_checkpoints
from .cost import predicted_speed_up as predicted_speed_up
from .estimates import Estimate as Estimate
from .settings import EnumeratedSettings as EnumeratedSettings
from .settings import SimulationSettings as SimulationSettings
from .simulation import Simulation as Simulation
from .simulation import simulate as simulate
from .simulation import simulate_enumerated as simulate_enumerated

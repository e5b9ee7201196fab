from .checkpoint import merge_checkpoints as merge_checkpoints
from .cost import predicted_speed_up as predicted_speed_up
from .estimates import Estimate as Estimate
from .runs import Simulation as Simulation
from .runs import simulate as simulate
from .runs import simulate_enumerated as simulate_enumerated

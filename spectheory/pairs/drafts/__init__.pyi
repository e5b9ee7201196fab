from .iid import Iid as Iid
from .iid import draft_process as draft_process
from .per_path import PerPath as PerPath
from .prefix_tree import PrefixTree as PrefixTree
from .process import ALL_PROCESSES as ALL_PROCESSES
from .process import DraftProcess as DraftProcess
from .process import DraftTuples as DraftTuples
from .without_replacement import WithoutReplacement as WithoutReplacement

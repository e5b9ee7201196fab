"""The roles of parameters and attributes of decoding loops, by the names that people use."""

import ast
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Mapping
from typing import Any

_NAMES = {
    "prompt": "prefix x input_ids inputs prompt prompts prompt_ids prompt_tokens tokens text "
    "initial_prompt_seq prompt_text input_text input_prompt",
    "draft": "draft_model drafter draft approx_model small_model small_net q_model Mq "
    "assistant_model assistant",
    "target": "target_model tgt_model target model verifier large_model big_model main_model net p_model Mp",
    "new tokens": "max_new_tokens max_tokens max_gen_len max_len N num_tokens n_tokens gen_len",
    "total tokens": "target_len seq_len max_length total_len",
    "draft length": "gamma K k lookahead num_draft num_drafts draft_length draft_len max_step_draft "
    "num_speculative_tokens n_draft num_assistant_tokens",
    "generator": "generator rng",
    "vocabulary": "vocab_size",
    "one": "temperature temp draft_temperature target_temperature lenience repetition_penalty",
    "no": "debug verbose use_cache early_stop auto_th_stop_draft return_logprobs stream",
    "yes": "do_sample do_sample_draft is_main_process",
    "zero": "top_k th_stop_draft filter_thres min_p",
    "top-p": "top_p",
    "tiny": "eps epsilon",
    "nothing": "random_seed seed streamer eos_token eos_token_id eos_tokens_id pad_token_id stop_tokens",
    "tokenizer": "tokenizer tok target_tokenizer draft_tokenizer assistant_tokenizer",
    "device": "device",
    "settings": "args config cfg accelerator options",
}
ROLES: Mapping[str, str] = {name: role for role, names in _NAMES.items() for name in names.split()}
"""Name of a parameter or an attribute -> its role."""
_CONSTANTS: Mapping[str, Any] = {
    "one": 1.0,
    "no": False,
    "yes": True,
    "zero": 0,
    "tiny": 1e-10,
    "nothing": None,
}
UNREACHED = 10**6
"""The end token of loops whose default end token could be drawn."""
KEPT = ("use_cache", "pad_token_id", "seed", "tokenizer", "device")
"""Parameters that keep their default, because it says what the loop does."""


class UnknownRoleError(TypeError):
    """A parameter without a default has a name that we do not know."""


def value_of(name: str, values: Mapping[str, Any]) -> Any:
    """The value of a known name, or of a declared sampling parameter.

    Raises:
        KeyError: we do not know the name, or have no value for its role.
    """
    if name in values.get("declared", {}):
        return values["declared"][name]
    role = ROLES[name]
    return _CONSTANTS[role] if role in _CONSTANTS else values[role]


def arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a loop, by the names of its parameters.

    An optional parameter that we do not know keeps its default.  If the default is an object of greedy
    decoding, we take a class of its module that samples.

    Raises:
        UnknownRoleError: a parameter that we do not know is required.
    """
    given: dict[str, Any] = {}
    fixed = (*KEPT, *getattr(function, "keywords", ()))  # a partial function says more
    for name, parameter in inspect.signature(function).parameters.items():
        is_required = parameter.default is parameter.empty
        if name == "self" or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if not is_required and name in fixed:
            continue
        try:
            given[name] = value_of(name, values)
        except KeyError:
            if is_required:
                raise UnknownRoleError(f"its parameter {name!r} has no name that we know") from None
            sampling = _sampling_sibling(parameter.default)
            if sampling is not None:
                given[name] = sampling
        else:
            if "eos" in name and isinstance(parameter.default, int):
                given[name] = UNREACHED
    return given


def roles_of(function: Callable[..., Any]) -> str:
    """The names of the parameters whose roles matter, with their roles where these have another name.

    Example:
        >>> roles_of(lambda prefix, approx_model, target_model, gamma, verbose=False: [])
        'prefix as prompt, approx_model as draft, target_model as target, gamma as draft length'
    """
    roles = {name: ROLES.get(name, "no") for name in inspect.signature(function).parameters}
    return ", ".join(
        name if name == role else f"{name} as {role}"
        for name, role in roles.items()
        if role not in _CONSTANTS
    )


def _sampling_sibling(default: Any) -> Any:
    """An object of the class beside the default's that samples, at temperature 1; ``None`` without one."""
    if not type(default).__name__.startswith("Greedy"):
        return None
    module = vars(sys.modules[type(default).__module__])
    for word in ("Multinomial", "Sampl"):
        for name, found in module.items():
            if isinstance(found, type) and word in name:
                return found(1.0)
    return None


class StandInSelf:
    """Stands for ``self`` where a class cannot be constructed.

    It has attributes by the roles of their names, the constants that ``__init__`` assigns, and the methods of
    the class.
    """

    def __init__(self, owner: type | None, values: Mapping[str, Any]) -> None:
        self.__dict__.update(_owner=owner, _values=values)
        for name, value in _constants_of(owner):
            self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        try:
            return (
                StandInSelf(None, self._values) if ROLES[name] == "settings" else value_of(name, self._values)
            )
        except KeyError:
            pass
        try:
            found = inspect.getattr_static(self._owner, name)
        except AttributeError:
            raise AttributeError(
                f"the stand-in for self has no attribute {name!r}", name=name, obj=self
            ) from None
        return found.__get__(self, self._owner) if hasattr(found, "__get__") else found


def _constants_of(owner: type | None) -> list[tuple[str, Any]]:
    if owner is None:
        return []
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner.__init__)))  # type: ignore[misc]
    except (OSError, TypeError, SyntaxError):
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            try:
                found.append((node.targets[0].attr, ast.literal_eval(node.value)))
            except ValueError:
                continue
    return found


def bound(function: Callable[..., Any], values: Mapping[str, Any]) -> Callable[..., Any]:
    """Bind a method to an object of its class, or to a stand-in for it; return other functions unchanged."""
    path = getattr(function, "__qualname__", "").split(".")
    if not isinstance(function, types.FunctionType) or len(path) != 2:
        return function
    owner: Any = vars(sys.modules[function.__module__]).get(path[0])
    if not isinstance(owner, type):
        return function
    try:
        this: Any = owner(**arguments(inspect.getattr_static(owner, "__init__"), values))
    except Exception:  # whatever it needs that we lack
        this = StandInSelf(owner, values)
    return types.MethodType(function, this)

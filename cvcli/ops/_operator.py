"""The declaration of an operator: a function whose signature and docstring say all there is.

It takes an `ImageSpec` and checked parameters and returns what is to be done: a `Move`, a
`Pointwise`, a pattern or several of them. From it come the Python function, the command, the word
in a chain and the tests.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, get_type_hints

from cvcli.core.apply import apply
from cvcli.core.chain import Chain, Step
from cvcli.core.passes import Lowered
from cvcli.core.spec import ImageSpec
from cvcli.core.stream import Stream
from cvcli.core.tensor import Tensor
from cvcli.errors import ParameterError
from cvcli.ops._params import Parameter, parameters_of

Function = Callable[..., Lowered]


class Operator:
    """An operator made from its declaration; call it with a tensor to run it."""

    def __init__(
        self,
        function: Function,
        cases: tuple[Mapping[str, Any], ...],
        exclusive: tuple[tuple[str, str], ...],
        planar: bool,
    ) -> None:
        self.function, self.cases, self.exclusive = function, cases, exclusive
        self.planar = planar
        self.name = function.__name__
        self.doc = inspect.cleandoc(function.__doc__ or "")
        self.parameters = self._parameters()
        self.__doc__, self.__name__ = self.doc, self.name
        self.__signature__ = self._signature()
        self._chain = lru_cache(maxsize=256)(self._make_chain)

    def __repr__(self) -> str:
        taken = ", ".join(self.__signature__.parameters)
        return f"<cvcli.{self.name}({taken})>"

    def __reduce__(self) -> tuple[Any, ...]:
        from cvcli.ops._registry import operator_named

        return operator_named, (self.name,)

    @property
    def command(self) -> str:
        """The operator's word on the command line and in a chain."""
        return self.name.replace("_", "-")

    @property
    def summary(self) -> str:
        """The first sentence of the description."""
        return self.doc.partition("\n")[0]

    @property
    def positional(self) -> Parameter | None:
        """The parameter that is given without an option, if there is one."""
        return next((p for p in self.parameters if p.param.positional), None)

    def __call__(
        self,
        src: Tensor,
        *args: Any,
        stream: Stream | None = None,
        out: Tensor | None = None,
        **kwargs: Any,
    ) -> Tensor:
        try:
            chain = self._chain(
                *map(_hashable, args), **{k: _hashable(v) for k, v in kwargs.items()}
            )
        except TypeError:
            # What has no hash is no value of a parameter either: its check says which one.
            chain = self._make_chain(*args, **kwargs)
        return apply(chain, src, stream=stream, out=out)

    def step(self, *args: Any, **kwargs: Any) -> Step:
        """Return the operator with its parameters bound and checked; raise `ParameterError`."""
        given = self._bind(args, kwargs)
        checked = {p.name: p.check(given.get(p.name, p.default)) for p in self.parameters}
        for one, other in self.exclusive:
            if checked[one] is not None and checked[other] is not None:
                raise ParameterError(f"{self.command}: {one} and {other} exclude each other")
        changed = tuple(
            (p.name, checked[p.name])
            for p in self.parameters
            if p.required or checked[p.name] != p.check(p.default)
        )
        bare = self.positional.name if self.positional else None
        return Step(self.name, changed, partial(_lower, self, checked), bare)

    def _make_chain(self, *args: Any, **kwargs: Any) -> Chain:
        return Chain((self.step(*args, **kwargs),))

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        names = [p.name for p in self.parameters]
        if len(args) > len(names):
            raise ParameterError(f"{self.command}: takes {len(names)} parameters, got {len(args)}")
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names:
                takes = f"takes {', '.join(names)}" if names else "takes no parameters"
                raise ParameterError(f"{self.command}: {takes}, got {name}")
            if name in given:
                raise ParameterError(f"{self.command}: {name} is given twice")
            given[name] = value
        for p in self.parameters:
            if p.required and p.name not in given:
                raise ParameterError(f"{self.command}: {p.name} must be given")
        return given

    def _parameters(self) -> tuple[Parameter, ...]:
        hints = get_type_hints(self.function, include_extras=True)
        signature = inspect.signature(self.function).parameters
        hints = {name: hints[name] for name in list(signature)[1:]}
        return tuple(parameters_of(self.command, hints, signature))

    def _signature(self) -> inspect.Signature:
        keyword = inspect.Parameter.KEYWORD_ONLY
        inner = list(inspect.signature(self.function).parameters.values())[1:]
        src = inspect.Parameter("src", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Tensor)
        extra = [
            inspect.Parameter(name, keyword, default=None, annotation=kind | None)
            for name, kind in (("stream", Stream), ("out", Tensor))
        ]
        return inspect.Signature([src, *inner, *extra], return_annotation=Tensor)


def operator(
    *,
    cases: tuple[Mapping[str, Any], ...] = ({},),
    exclusive: tuple[tuple[str, str], ...] = (),
    planar: bool = False,
) -> Callable[[Function], Operator]:
    """Declare an operator.

    ``cases`` are parameters that the derived tests run it with; ``exclusive`` are pairs of
    optional parameters of which at most one may be given; ``planar`` says that it takes images
    whose channels are planes.
    """
    return lambda function: Operator(function, cases, exclusive, planar)


def _lower(operator: Operator, params: Mapping[str, Any], spec: ImageSpec) -> Lowered:
    prefix = f"{operator.command}: "
    if spec.planar and not operator.planar:
        raise ParameterError(
            f"{prefix}layout must be interleaved, got planar",
            tip="put it before the change of layout, or reformat to interleaved first",
        )
    try:
        return operator.function(spec, **params)
    except ParameterError as error:
        message = str(error)
        raise ParameterError(
            message if message.startswith(prefix) else prefix + message, error.tip
        ) from None


def _hashable(value: Any) -> Any:
    if hasattr(value, "tolist") and not isinstance(value, type):
        value = value.tolist()
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value

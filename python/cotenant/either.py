"""Methods that may be called on a class, with its options, or on an object made with them."""

from __future__ import annotations

import inspect
from typing import Any, Callable, cast


class Either:
    """A method of an object that, called on the class, makes the object first.

    ``Balancer.prepare(model, seed=1)`` is ``Balancer(seed=1).prepare(model)``.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self._own = tuple(inspect.signature(method).parameters)[1:]
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        if instance is not None:
            return cast("Callable[..., Any]", self._method.__get__(instance, owner))

        def make(*args: Any, **options: Any) -> Any:
            own = {name: options.pop(name) for name in self._own if name in options}
            return self._method(owner(**options), *args, **own)

        make.__doc__ = self.__doc__
        return make

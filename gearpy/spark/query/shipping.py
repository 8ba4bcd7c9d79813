"""A program's own functions and classes, on their way to Spark's Python workers.

Workers can import what is installed, but not the program: so the code of its modules travels
with the functions. Record classes are known by name to gearpy's encoding, so they travel, too.
"""

import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from gearpy.spark.query.plan import BatchStep, LinearPlan, RowsStep, Step
from gearpy.wire.values.forms import RecordType
from gearpy.wire.values.records import DEFAULT_REGISTRY

_INSTALLED: Final = tuple(
    Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib")
)
_GEARPY: Final = Path(__file__).resolve().parents[2]


def send_by_value(plan: LinearPlan) -> dict[str, RecordType]:
    """Make cloudpickle send the program's own modules, which a plan uses, as code.

    Returns:
        How instances of its classes travel, which no worker knows by itself, by their names.
    """
    from pyspark import cloudpickle  # noqa: PLC0415 - who has no Spark sends nothing

    modules = own_modules(_functions(plan))
    for module in modules:
        if module.__name__ != "__main__":  # That travels as code in any case.
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    found = record_classes(modules)
    return {name: record for name, record in found.items() if _can_be_sent(record.cls)}


def own_modules(functions: Iterable[Any]) -> list[ModuleType]:
    folders = {
        file.parent
        for function in functions
        if (file := _file_of(_module_of(function))) and not _is_installed(file)
    }
    loaded = dict.fromkeys(sys.modules.values())
    return [each for each in loaded if (file := _file_of(each)) and file.parent in folders]


def record_classes(modules: Iterable[ModuleType]) -> dict[str, RecordType]:
    names = (each for module in modules for each in vars(module).values())
    classes = [each for each in names if isinstance(each, type)]
    records = filter(None, map(DEFAULT_REGISTRY.of_class, classes))
    return {each.name: each for each in records if not _is_installed_class(each.cls)}


def _can_be_sent(cls: type) -> bool:
    """Tell whether Spark can be given the code of a class; a lock in it, say, stays here.

    Such a class is none of records, as of a `cached_property` that builds a program.
    """
    from pyspark import cloudpickle  # noqa: PLC0415 - who has no Spark sends nothing

    try:
        cloudpickle.dumps(cls)  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 - whatever its parts raise
        return False
    return True


def _functions(plan: LinearPlan) -> Iterator[Any]:
    yield plan.source
    yield from getattr(plan.source, "__dict__", {}).values()
    yield getattr(plan.source.schema, "row_type", None)
    for step in plan.steps:
        yield from _functions_of(step)


def _functions_of(step: Step) -> Iterator[Any]:
    if isinstance(step, RowsStep):
        yield from (operator.function for operator in step.operators)
    elif isinstance(step, BatchStep):
        yield from (step.function, getattr(step.gives, "row_type", None))
    else:
        yield step.key
        for each in step.aggregates.values():
            yield from (*each.fields, each.create, each.add, each.merge, each.result)
            function = each.add
            for cell in getattr(function, "__closure__", None) or ():
                with suppress(ValueError):  # Empty still.
                    yield cell.cell_contents
        if step.fold is not None:
            yield from (step.fold.first, step.fold.add, step.fold.merge)
    yield getattr(step.takes, "row_type", None)


def _module_of(function: Any) -> ModuleType | None:
    function = getattr(function, "func", function)  # It may be a partial.
    function = getattr(function, "__func__", function)  # It may be a bound method.
    name = getattr(function, "__module__", None) or type(function).__module__
    return sys.modules.get(name)


def _file_of(module: ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


def _is_installed_class(cls: type) -> bool:
    file = _file_of(sys.modules.get(cls.__module__))
    return file is not None and _is_installed(file)


def _is_installed(file: Path) -> bool:
    return file.is_relative_to(_GEARPY) or any(file.is_relative_to(each) for each in _INSTALLED)

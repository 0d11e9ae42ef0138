"""Makes test plans in JMeter's file format."""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

_LOOP = 'elementType="LoopController" guiclass="LoopControlPanel" testclass="LoopController"'
Value = str | int | bool | Sequence[str]


def element(
    kind: str, name: str = "", below: str = "", *, enabled: bool = True, gui: str = "", more: str = "", **values: Any
) -> str:
    """Returns an element and the `hashTree` behind it. In names of properties two underscores stand for a dot."""
    properties = "".join(_property(key.replace("__", "."), value) for key, value in values.items())
    attributes = f"guiclass={quoteattr(gui or kind)} testclass={quoteattr(kind)} testname={quoteattr(name or kind)}"
    return f'<{kind} {attributes} enabled="{str(enabled).lower()}">{properties}{more}</{kind}><hashTree>{below}</hashTree>\n'


def plan(*elements: str, variables: Mapping[str, str] | None = None, is_serial: bool = False) -> str:
    """Returns the text of a whole test plan."""
    given = arguments(
        "TestPlan.user_defined_variables", [(name, value, False) for name, value in (variables or {}).items()]
    )
    root = element("TestPlan", "Plan", "".join(elements), TestPlan__serialize_threadgroups=is_serial, more=given)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<jmeterTestPlan version="1.2"><hashTree>\n{root}</hashTree></jmeterTestPlan>\n'


def group(
    *below: str,
    threads: Value = 1,
    loops: Value = 1,
    ramp: Value = 0,
    kind: str = "ThreadGroup",
    name: str = "Users",
    is_endless: bool = False,
    **values: Any,
) -> str:
    """Returns a thread group."""
    loop = _property("LoopController.continue_forever", is_endless) + _property("LoopController.loops", loops)
    controller = f'<elementProp name="ThreadGroup.main_controller" {_LOOP}>{loop}</elementProp>'
    given: dict[str, Any] = {"ThreadGroup__num_threads": threads, "ThreadGroup__ramp_time": ramp} | {
        f"ThreadGroup__{key}": value for key, value in values.items()
    }
    return element(kind, name, "".join(below), more=controller, **given)


def get(
    name: str = "get", path: str = "/", below: str = "", *, given: Sequence[tuple[str, str, bool]] = (), **values: Any
) -> str:
    """Returns a sampler of http://127.0.0.1:8080; `values` may change its properties."""
    usual: dict[str, Any] = {"domain": "127.0.0.1", "port": "8080", "method": "GET", "use_keepalive": True}
    properties = {f"HTTPSampler__{key}": value for key, value in (usual | {"path": path} | values).items()}
    return element("HTTPSamplerProxy", name, below, more=arguments("HTTPsampler.Arguments", given), **properties)


def headers(**values: str) -> str:
    """Returns a header manager."""
    pairs = (
        (_property("Header.name", name.replace("_", "-")), _property("Header.value", value))
        for name, value in values.items()
    )
    items = "".join(f'<elementProp name="" elementType="Header">{name}{value}</elementProp>' for name, value in pairs)
    return element(
        "HeaderManager",
        gui="HeaderPanel",
        more=f'<collectionProp name="HeaderManager.headers">{items}</collectionProp>',
    )


def assertion(kind: int, *texts: str, field: str = "response_data", **values: Any) -> str:
    """Returns a response assertion; the bits of `kind` are: matches 1, contains 2, not 4, equals 8, substring 16, or
    32."""
    given: dict[str, Any] = {
        "Assertion__test_field": f"Assertion.{field}",
        "Assertion__test_type": kind,
        "Asserion__test_strings": texts,
    }
    return element("ResponseAssertion", **given, **values)


def constant_timer(delay: Value) -> str:
    """Returns a timer with a constant pause in milliseconds."""
    return element("ConstantTimer", ConstantTimer__delay=delay)


def uniform_timer(delay: Value, range_: Value) -> str:
    """Returns a timer with a constant pause plus a random pause, both in milliseconds."""
    return element("UniformRandomTimer", ConstantTimer__delay=delay, RandomTimer__range=range_)


def data_set(filename: str, **values: Any) -> str:
    """Returns a CSV data set; all threads share its rows, which start again after the end."""
    usual: dict[str, Any] = {
        "delimiter": ",",
        "recycle": True,
        "stopThread": False,
        "quotedData": True,
        "shareMode": "shareMode.all",
    }
    return element("CSVDataSet", filename, **(usual | {"filename": filename} | values))


def arguments(name: str, given: Sequence[tuple[str, str, bool]]) -> str:
    """Returns arguments: names, values, and whether they are encoded."""
    items = "".join(
        f'<elementProp name={quoteattr(key)} elementType="HTTPArgument">{_property("HTTPArgument.always_encode", is_encoded)}'
        f"{_property('Argument.value', value)}{_property('Argument.metadata', '=')}{_property('Argument.name', key)}</elementProp>"
        for key, value, is_encoded in given
    )
    collection = f'<collectionProp name="Arguments.arguments">{items}</collectionProp>'
    return f'<elementProp name="{name}" elementType="Arguments">{collection}</elementProp>'


def _property(name: str, value: Value) -> str:
    if isinstance(value, bool):
        return f'<boolProp name="{name}">{str(value).lower()}</boolProp>'
    if isinstance(value, int):
        return f'<intProp name="{name}">{value}</intProp>'
    if isinstance(value, str):
        return f'<stringProp name="{name}">{escape(value)}</stringProp>'
    return f'<collectionProp name="{name}">{"".join(_property(str(hash(one)), one) for one in value)}</collectionProp>'

"""The static sheet of a driver's class: what it is and can do, for whoever looks for a driver.

Knows: the fields, their JSON and XML. Does not know: driver objects; it is read without building one.
"""

import json
import xml.etree.ElementTree as ET
from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, slots=True)
class DriverBinding:
    """What a driver connects to: a capability (`rest`), over which adapter, described in which format."""

    capability: str
    adapter: str = "*"
    spec_format: str = ""


@dataclass(frozen=True, slots=True)
class DriverMeta:
    """The static sheet of a driver's class, readable without building the driver.

    Attributes:
        id: stable and unique, such as `interpose.filesystem`.
        name: for people.
        version: the driver's own.
        bindings: what it connects to.
        supported_llms: names of models, "*" for all; None for tools without prompts.
        capabilities: flags; `of` adds those of the contracts that the class implements.
    """

    id: str
    name: str
    version: str
    bindings: tuple[DriverBinding, ...] = ()
    supported_llms: tuple[str, ...] | None = ("*",)
    capabilities: tuple[str, ...] = ()

    @staticmethod
    def of(driver_class: type) -> "DriverMeta":
        """The sheet in the class's attribute `meta`, with the flags of every contract among its bases, nearest first.

        Raises TypeError naming the class when it has no `meta`. Builds nothing; any thread may call it.
        """
        meta = getattr(driver_class, "meta", None)
        if not isinstance(meta, DriverMeta):
            raise TypeError(f"{driver_class.__name__} has no sheet: give the class `meta = DriverMeta(...)`")

        flags = [flag for base in driver_class.__mro__ if isinstance(flag := vars(base).get("CAPABILITY"), str)]
        return replace(meta, capabilities=tuple(dict.fromkeys((*meta.capabilities, *flags))))

    def has_capability(self, contract: type) -> bool:
        """Whether the contract's flag is on the sheet; for an object at hand `isinstance` says it better."""
        return getattr(contract, "CAPABILITY", None) in self.capabilities

    def to_json(self) -> str:
        """The sheet as a JSON object."""
        return json.dumps(asdict(self), ensure_ascii=False)

    def to_xml(self) -> str:
        """The sheet as one `<driver>` element with the same words as the JSON."""
        root = ET.Element("driver", id=self.id, name=self.name, version=self.version)
        bindings = ET.SubElement(root, "bindings")
        for binding in self.bindings:
            ET.SubElement(bindings, "binding", asdict(binding))
        for tag, values in (("supported_llms", self.supported_llms), ("capabilities", self.capabilities)):
            if values is not None:
                holder = ET.SubElement(root, tag)
                for value in values:
                    ET.SubElement(holder, "item").text = value
        return ET.tostring(root, encoding="unicode")

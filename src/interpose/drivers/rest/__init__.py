"""Any API that an OpenAPI 3 or Swagger 2 document describes, one tool for each operation.

Knows: the document, requests and responses. Does not know: who may call; that is a middleware's work. Needs httpx.
"""

try:
    import httpx as _httpx  # noqa: F401 - looked for here, so that one error names the extra
except ModuleNotFoundError as missing:
    if missing.name != "httpx":
        raise
    raise ImportError("interpose.drivers.rest needs httpx: pip install 'interpose[rest]'") from missing

from interpose.drivers.rest.document import load_document
from interpose.drivers.rest.driver import RestDriver, RestSettings, RestTools
from interpose.drivers.rest.reading import Select
from interpose.drivers.rest.response import ApiResponse, told

__all__ = ["ApiResponse", "RestDriver", "RestSettings", "RestTools", "Select", "load_document", "told"]

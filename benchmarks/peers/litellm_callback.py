"""What LiteLLM's proxy is given to do with each event of a stream: pass it on, as a callback of it sees it."""

from collections.abc import AsyncIterator
from typing import Any

from litellm.integrations.custom_logger import CustomLogger


class Passing(CustomLogger):
    """Sees every event and changes none."""

    async def async_post_call_streaming_iterator_hook(
        self,
        user_api_key_dict: Any,  # noqa: ARG002 - LiteLLM's
        response: Any,
        request_data: dict[str, Any],  # noqa: ARG002 - LiteLLM's
    ) -> AsyncIterator[Any]:
        """Counts what passes."""
        self.seen = 0
        async for event in response:
            self.seen += 1
            yield event


passing = Passing()

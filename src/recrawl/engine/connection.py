"""A session of a Spark Connect server, which answers within seconds or is refused with one sentence."""

from __future__ import annotations

import os
import warnings
from typing import Any

from recrawl.errors import EngineError

CONNECT_SECONDS = 8
MOST_BYTES = 256 << 20  #: of one message; a server may allow less
#: Requests that a server does not answer are repeated for seconds, not for the ten minutes of the client.
RETRIES = {"max_retries": 5, "initial_backoff": 50, "max_backoff": 4000}
RETRIES_HERE = {"max_retries": 2, "initial_backoff": 50, "max_backoff": 200}  #: of a server on this machine


def connected(url: str, shown: str, *, is_here: bool = False) -> Any:
    """A session of its own at this server; raises `EngineError` where none answers. `shown`: the URL for messages."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what goes wrong is said once, by us
    import grpc
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession

    try:
        sizes = [("grpc.max_receive_message_length", MOST_BYTES), ("grpc.max_send_message_length", MOST_BYTES)]
        builder = DefaultChannelBuilder(url, sizes)
        _check_answers(builder.toChannel(), shown)
        session = SparkSession.builder.channelBuilder(builder).create()
        _limit_retries(session, RETRIES_HERE if is_here else RETRIES)
        _ = session.version
    except (PySparkException, grpc.RpcError, ValueError) as error:
        raise EngineError(f"{shown}: {first_sentence(error)}") from error
    return session


def _check_answers(channel: Any, shown: str) -> None:
    import grpc

    try:
        grpc.channel_ready_future(channel).result(timeout=CONNECT_SECONDS)
    except grpc.FutureTimeoutError:
        raise EngineError(
            f"no Spark Connect server answers at {shown}; is it running, and do host, port and use_ssl fit it?"
        ) from None
    finally:
        channel.close()


def _limit_retries(session: Any, retries: dict[str, Any]) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(**retries)])
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")


def first_sentence(error: BaseException) -> str:
    """What an error of the engine says, without its stack trace.

    >>> first_sentence(ValueError(" [NO_TABLE] There is none. \\n\\nStack trace: …"))
    '[NO_TABLE] There is none.'
    >>> first_sentence(ValueError('<RPC that terminated with:\\n\\tdetails = "Connection reset"\\n>'))
    'Connection reset'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    details = [line.removeprefix('details = "').removesuffix('"') for line in lines if line.startswith('details = "')]
    return (details or lines or [type(error).__name__])[0][:500]

"""A worker with one workflow that returns its input: tests that the SDK is installed and reaches the server."""

import asyncio
import sys

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker


@workflow.defn(name="Echo")
class Echo:
    @workflow.run
    async def run(self, text: str) -> str:
        return text


async def main() -> None:
    client = await Client.connect(sys.argv[1], namespace=sys.argv[2])
    async with Worker(client, task_queue="echo", workflows=[Echo]):
        print("ready")
        await asyncio.Event().wait()


# The SDK loads the file again, for its sandbox.
if __name__ == "__main__":
    asyncio.run(main())

"""A worker with Temporal's own SDK. The params of the request control the workflow.

    worker.py ADDRESS NAMESPACE
"""

import asyncio
import json
import sys

from temporalio import workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker


async def do(given: dict) -> str:
    # Tests read this line. One write, because workflows run on several threads.
    sys.stdout.write("given " + json.dumps(given) + "\n")
    params = given["params"]
    if params["do"] == "fail":
        raise ApplicationError("the order cannot be filled") from ApplicationError("the card was declined")
    if params["do"] == "wait":
        await workflow.wait_condition(lambda: False)
    if params["do"] == "nap":
        await asyncio.sleep(params["seconds"])
    return "done"


@workflow.defn(name="Order")
class Order:
    @workflow.run
    async def run(self, given: dict) -> str:
        return await do(given)


@workflow.defn(name="LeaseholdGraph")
class Graph:
    @workflow.run
    async def run(self, given: dict) -> str:
        return await do(given)


async def main() -> None:
    client = await Client.connect(sys.argv[1], namespace=sys.argv[2])
    runner = UnsandboxedWorkflowRunner()
    orders = Worker(client, task_queue="orders", workflows=[Order], workflow_runner=runner)
    graphs = Worker(client, task_queue="leasehold", workflows=[Graph], workflow_runner=runner)
    async with orders, graphs:
        print("ready")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())

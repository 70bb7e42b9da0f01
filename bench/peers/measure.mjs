// Shared code of the drivers: a driver reports that it is ready, waits for a line, measures, and reports its result as JSON lines.
// Knows no queue. Usage: node <driver>.mjs <measurement> <arguments as JSON>

import { createInterface } from 'node:readline'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { fileURLToPath } from 'node:url'

const send = (line) => process.stdout.write(JSON.stringify(line) + '\n')

/** About 100 bytes of JSON, the same payload as in Leasehold's benchmark. */
export const payload = (n) => ({ at: n, note: 'a job that does nothing but is as long as an ordinary small one: 0123456789' })

/** Runs the measurement named on the command line. Each measurement prepares itself and returns `{ run, close }`. */
export async function serve (measurements) {
  const [name, text] = process.argv.slice(2)
  const measurement = await measurements[name](JSON.parse(text))
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  send({ ready: true })
  await lines.next()
  const before = process.cpuUsage()
  const begun = process.hrtime.bigint()
  const found = await measurement.run()
  const seconds = Number(process.hrtime.bigint() - begun) / 1e9
  const used = process.cpuUsage(before)
  send({ seconds, cpu: (used.user + used.system) / 1e6, memory: process.resourceUsage().maxRSS / 1024, ...found })
  // Waits until the parent has read the costs, because closing has costs too.
  await lines.next()
  await measurement.close()
  process.exit(0)
}

/** Calls `one(n)` for every n below `count`, from `many` concurrent callers. */
export async function callers (count, many, one) {
  let next = 0
  await Promise.all(Array.from({ length: many }, async () => {
    while (next < count) await one(next++)
  }))
}

/** Calls `some(from, count)` until `count` is reached. */
export async function batches (count, batch, some) {
  for (let from = 0; from < count; from += batch) await some(from, Math.min(batch, count - from))
}

/** Polls until `done` returns true. */
export async function until (done) {
  while (!await done()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** Whether this file runs as the enqueuing thread of a latency measurement. */
export const isEnqueuer = !isMainThread

/**
 * Latency: a separate thread with its own connections enqueues one job at a time and records when the call returned, which is after the
 * commit; the handler in this thread records when it started.
 */
export function latency (driver, args) {
  const thread = new Worker(fileURLToPath(driver), { workerData: args })
  const ready = new Promise((resolve, reject) => {
    thread.once('message', resolve)
    thread.once('error', reject)
  })
  return {
    ready,
    started: () => thread.postMessage(process.hrtime.bigint()),
    run: async () => {
      const found = new Promise((resolve, reject) => {
        thread.once('message', resolve)
        thread.once('error', reject)
      })
      thread.postMessage('go')
      return await found
    },
    close: () => thread.terminate()
  }
}

/** The enqueuing thread. `open` returns the function that enqueues one job. */
export async function enqueuer (open) {
  const one = await open(workerData)
  const nextMessage = () => new Promise((resolve) => parentPort.once('message', resolve))
  const begin = nextMessage()
  parentPort.postMessage('ready')
  await begin
  const afterCommit = []
  const afterCall = []
  for (let n = 0; n < workerData.jobs + workerData.warmUps; n++) {
    const started = nextMessage()
    const called = process.hrtime.bigint()
    await one(n)
    const committed = process.hrtime.bigint()
    const at = await started
    if (n >= workerData.warmUps) {
      afterCommit.push(Math.max(0, Number(at - committed) / 1e6))
      afterCall.push(Number(at - called) / 1e6)
    }
    // Lets the worker become idle.
    await new Promise((resolve) => setTimeout(resolve, workerData.pause))
  }
  parentPort.postMessage({ afterCommit, afterCall })
}

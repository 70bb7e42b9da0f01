// What the drivers of other job queues share: they say when they are ready, wait for a line, measure, and say what they found.
// Knows no queue. A driver is started as: node <driver>.mjs <what> <arguments as JSON>, and speaks JSON lines.

import { createInterface } from 'node:readline'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { fileURLToPath } from 'node:url'

const say = (line) => process.stdout.write(JSON.stringify(line) + '\n')

/** About 100 bytes of JSON, the same that Leasehold's own jobs carry. */
export const payload = (n) => ({ at: n, note: 'a job that does nothing but is as long as an ordinary small one: 0123456789' })

/** Runs what the command line asks for. Each measurement prepares itself and returns `{ run, close }`. */
export async function serve (measurements) {
  const [what, text] = process.argv.slice(2)
  const measurement = await measurements[what](JSON.parse(text))
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  say({ ready: true })
  await lines.next()
  const before = process.cpuUsage()
  const begun = process.hrtime.bigint()
  const found = await measurement.run()
  const seconds = Number(process.hrtime.bigint() - begun) / 1e9
  const used = process.cpuUsage(before)
  say({ seconds, cpu: (used.user + used.system) / 1e6, memory: process.resourceUsage().maxRSS / 1024, ...found })
  // Stays until it is told that the costs have been read: closing costs something too.
  await lines.next()
  await measurement.close()
  process.exit(0)
}

/** Calls `one(n)` for every n below `count`, from that many callers at once. */
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

/** Resolves when `done` says so; asked again and again, as a database tells nobody when its last row was written. */
export async function until (done) {
  while (!await done()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** Whether this file is run as the thread that enqueues for a measurement of latency. */
export const isEnqueuer = !isMainThread

/**
 * Latency: a thread of its own enqueues one job at a time, on connections of its own, and notes when the call has returned, which is after the
 * commit; this thread's handler notes when it was started.
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

/** The other end of it. `open` returns the function that enqueues one job. */
export async function enqueuer (open) {
  const one = await open(workerData)
  const told = () => new Promise((resolve) => parentPort.once('message', resolve))
  const begin = told()
  parentPort.postMessage('ready')
  await begin
  const afterCommit = []
  const afterCall = []
  for (let n = 0; n < workerData.jobs + workerData.warmUps; n++) {
    const started = told()
    const called = process.hrtime.bigint()
    await one(n)
    const committed = process.hrtime.bigint()
    const at = await started
    if (n >= workerData.warmUps) {
      afterCommit.push(Math.max(0, Number(at - committed) / 1e6))
      afterCall.push(Number(at - called) / 1e6)
    }
    // Long enough for the worker to be idle again.
    await new Promise((resolve) => setTimeout(resolve, workerData.pause))
  }
  parentPort.postMessage({ afterCommit, afterCall })
}

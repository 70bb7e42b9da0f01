// Measures graphile-worker with the best configuration found for each measurement. It deletes completed jobs.

import pg from 'pg'
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { batches, callers, enqueuer, isEnqueuer, latency, payload, serve, until } from './measure.mjs'

const TASK = 'noop'
const logger = new Logger(() => () => {})

async function open ({ url }, connections) {
  const pgPool = new pg.Pool({ connectionString: url, max: connections })
  // graphile-worker requires these handlers; the calls report broken connections.
  pgPool.on('error', () => {})
  pgPool.on('connect', (client) => client.on('error', () => {}))
  const utils = await makeWorkerUtils({ pgPool, logger })
  return { pgPool, utils, close: async () => { await utils.release(); await pgPool.end() } }
}

const fill = (utils, { jobs, batch }) => batches(jobs, batch, (from, count) =>
  utils.addJobs(Array.from({ length: count }, (_, n) => ({ identifier: TASK, payload: payload(from + n) }))))

async function singles (args) {
  const { utils, close } = await open(args, args.connections)
  await utils.migrate()
  await callers(args.connections, args.connections, () => utils.addJob(TASK, payload(0)))
  return { run: () => callers(args.jobs, args.connections, (n) => utils.addJob(TASK, payload(n))), close }
}

async function bulk (args) {
  const { utils, close } = await open(args, 1)
  await utils.migrate()
  await utils.addJob(TASK, payload(0))
  return { run: () => fill(utils, args), close }
}

async function drain (args) {
  const { pgPool, utils, close } = await open(args, args.connections)
  await utils.migrate()
  await fill(utils, args)
  await pgPool.query('VACUUM ANALYZE')
  let runner
  const work = async () => {
    let left = args.jobs
    const handled = new Promise((resolve) => {
      const noop = async () => { if (--left === 0) resolve() }
      run({
        pgPool,
        logger,
        noHandleSignals: true,
        taskList: { [TASK]: noop },
        preset: {
          worker: {
            concurrentJobs: args.concurrency,
            localQueue: { size: args.local },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0
          }
        }
      }).then((started) => { runner = started })
    })
    await handled
    await until(async () => (await pgPool.query('SELECT FROM graphile_worker._private_jobs LIMIT 1')).rowCount === 0)
  }
  return { run: work, close: async () => { await runner.stop(); await close() } }
}

async function measureLatency (args) {
  const { pgPool, utils, close } = await open(args, 4)
  await utils.migrate()
  const timed = latency(import.meta.url, args)
  const runner = await run({
    pgPool,
    logger,
    noHandleSignals: true,
    taskList: { [TASK]: async () => timed.started() },
    preset: { worker: { concurrentJobs: args.concurrency } }
  })
  await timed.ready
  return {
    run: timed.run,
    close: async () => { await timed.close(); await runner.stop(); await close() }
  }
}

if (isEnqueuer) {
  await enqueuer(async (args) => {
    const { utils } = await open(args, 1)
    return (n) => utils.addJob(TASK, payload(n))
  })
} else {
  await serve({ singles, bulk, drain, latency: measureLatency })
}

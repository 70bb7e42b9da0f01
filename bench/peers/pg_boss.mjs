// Measures pg-boss with the best configuration found for each measurement. It keeps completed jobs.

import { PgBoss } from 'pg-boss'
import { batches, callers, enqueuer, isEnqueuer, latency, payload, serve, until } from './measure.mjs'

const QUEUE = 'noop'

async function open ({ url }, connections, more = {}) {
  const boss = new PgBoss({
    connectionString: url,
    max: connections,
    schedule: false,
    supervise: false,
    monitorVacuum: false,
    ...more
  })
  boss.on('error', (error) => { throw error })
  await boss.start()
  return boss
}

const stop = (boss) => boss.stop({ graceful: false, close: true })

const fill = (boss, { jobs, batch }) => batches(jobs, batch, (from, count) =>
  boss.insert(QUEUE, Array.from({ length: count }, (_, n) => ({ data: payload(from + n) }))))

async function singles (args) {
  const boss = await open(args, args.connections)
  await boss.createQueue(QUEUE)
  await callers(args.connections, args.connections, () => boss.send(QUEUE, payload(0)))
  return {
    run: () => callers(args.jobs, args.connections, (n) => boss.send(QUEUE, payload(n))),
    close: () => stop(boss)
  }
}

async function bulk (args) {
  const boss = await open(args, 1)
  await boss.createQueue(QUEUE)
  await boss.send(QUEUE, payload(0))
  return { run: () => fill(boss, args), close: () => stop(boss) }
}

async function drain (args) {
  const boss = await open(args, args.connections)
  await boss.createQueue(QUEUE)
  await fill(boss, args)
  const db = boss.getDb()
  await db.executeSql('VACUUM ANALYZE')
  const work = async () => {
    let left = args.jobs
    await new Promise((resolve, reject) => {
      const noop = async (jobs) => {
        left -= jobs.length
        if (left === 0) resolve()
      }
      boss.work(QUEUE, {
        batchSize: args.local,
        localConcurrency: args.concurrency,
        pollingIntervalSeconds: 0.5,
        burstWhenBatchFull: true
      }, noop).catch(reject)
    })
    await until(async () =>
      (await db.executeSql("SELECT FROM pgboss.job WHERE state < 'completed' LIMIT 1")).rows.length === 0)
  }
  return { run: work, close: () => stop(boss) }
}

async function measureLatency (args) {
  const boss = await open(args, 4, { useListenNotify: true })
  await boss.createQueue(QUEUE, { notify: true })
  const timed = latency(import.meta.url, args)
  await boss.work(QUEUE, { localConcurrency: args.concurrency, pollingIntervalSeconds: 0.5 }, async () => timed.started())
  await timed.ready
  return { run: timed.run, close: async () => { await timed.close(); await stop(boss) } }
}

if (isEnqueuer) {
  await enqueuer(async (args) => {
    const boss = await open(args, 1)
    return (n) => boss.send(QUEUE, payload(n))
  })
} else {
  await serve({ singles, bulk, drain, latency: measureLatency })
}

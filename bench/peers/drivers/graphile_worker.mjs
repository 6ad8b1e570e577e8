// graphile-worker: a local queue of 500, completions in batches.

import { load, publisher, stopwatch } from "./publishing.mjs";

const given = JSON.parse(process.argv[2]);
const { runMigrations, run } = load("graphile-worker");
const { Pool } = load("pg");

const pool = new Pool({ connectionString: given.database_url, max: 20 });
await runMigrations({ pgPool: pool });
await pool.query("select graphile_worker.add_job('ring', json_build_object('n', n)) from generate_series(1, $1::int) n", [
  given.count,
]);
const { publish, close } = await publisher(given.amqp_url, given.queue);

let remaining = given.count;
let finished;
const all = new Promise((resolve) => (finished = resolve));
const done = stopwatch(given.count);
const runner = await run({
  pgPool: pool,
  noHandleSignals: true,
  logger: new (load("graphile-worker").Logger)(() => () => {}),
  preset: {
    worker: { concurrentJobs: 100, pollInterval: 100, localQueue: { size: 500 }, completeJobBatchDelay: 0 },
  },
  taskList: {
    ring: async () => {
      await publish();
      if (--remaining === 0) finished();
    },
  },
});
await all;
done();
await runner.stop();
await close();
process.exit(0);

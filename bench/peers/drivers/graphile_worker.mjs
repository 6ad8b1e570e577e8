// graphile-worker: a local queue of 500, completions in batches, a look every 100 ms besides its notifications.

import { given, run } from "./course.mjs";
import { load } from "./publishing.mjs";

const { Logger, run: start, runMigrations } = load("graphile-worker");
const { Pool } = load("pg");
const pool = new Pool({ connectionString: given.database_url, max: 20 });
const ADD = `
  select graphile_worker.add_job('ring', json_build_object('n', $1::int + n - 1), run_at := to_timestamp(due))
    from unnest($2::float8[]) with ordinality as t(due, n)`;

await run({
  install: () => runMigrations({ pgPool: pool }),

  add: (first, dueAt) => pool.query(ADD, [first, dueAt.map((due) => due / 1000)]),

  work: async (handle) => {
    const runner = await start({
      pgPool: pool,
      noHandleSignals: true,
      logger: new Logger(() => () => {}),
      preset: {
        worker: { concurrentJobs: 100, pollInterval: 100, localQueue: { size: 500 }, completeJobBatchDelay: 0 },
      },
      taskList: { ring: ({ n }) => handle(n) },
    });
    return () => runner.stop();
  },
});

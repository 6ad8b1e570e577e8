// pg-boss: batches of 1,000, all of a batch handled at once, a look every half second, the least that it allows. While
// batches come back full it looks again at once; three workers, so that one fetches while another's jobs are handled.

import { given, run } from "./course.mjs";
import { load } from "./publishing.mjs";

const BATCH = 1000;
const WORKERS = 3;
const { PgBoss } = load("pg-boss");
let boss;

async function started() {
  if (!boss) {
    boss = new PgBoss({ connectionString: given.database_url, max: 20, supervise: false, schedule: false });
    await boss.start();
  }
  return boss;
}

await run({
  install: async () => (await started()).createQueue("ring"),

  add: async (first, dueAt) => {
    const jobs = dueAt.map((due, n) => ({ data: { n: first + n }, startAfter: new Date(due) }));
    for (let start = 0; start < jobs.length; start += BATCH) {
      await (await started()).insert("ring", jobs.slice(start, start + BATCH));
    }
  },

  work: async (handle) => {
    const options = {
      batchSize: BATCH,
      pollingIntervalSeconds: 0.5,
      burstWhenBatchFull: true,
      localConcurrency: WORKERS,
    };
    await (await started()).work("ring", options, (jobs) => Promise.all(jobs.map((job) => handle(job.data.n))));
    return () => boss.offWork("ring");
  },
});

// pg-boss: batches of 1,000, all of a batch published at once.

import { load, publisher, stopwatch } from "./publishing.mjs";

const given = JSON.parse(process.argv[2]);
const PgBoss = load("pg-boss");
const boss = new PgBoss({ connectionString: given.database_url, max: 20, supervise: false, schedule: false });
await boss.start();
await boss.createQueue("ring");
for (let start = 0; start < given.count; start += 1000) {
  const size = Math.min(1000, given.count - start);
  await boss.insert(Array.from({ length: size }, (_, n) => ({ name: "ring", data: { n } })));
}
const { publish, close } = await publisher(given.amqp_url, given.queue);

let remaining = given.count;
let finished;
const all = new Promise((resolve) => (finished = resolve));
const done = stopwatch(given.count);
await boss.work("ring", { batchSize: 1000, pollingIntervalSeconds: 0.5 }, async (jobs) => {
  await Promise.all(jobs.map(publish));
  remaining -= jobs.length;
  if (remaining === 0) finished();
});
await all;
done();
await boss.stop({ graceful: false, wait: false });
await close();
process.exit(0);

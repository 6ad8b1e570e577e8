// What every peer written for Node is put through, in a process of its own: one-shots, heard at their moments; then due
// jobs, as fast as it can. `course.py` is the same for those in Python. A peer has `install()`, `add(first, dueAt)` and
// `work(handle)`, which gives a function that ends the worker; moments are in milliseconds.

import { load, publisher } from "./publishing.mjs";

export const given = JSON.parse(process.argv[2]);

const LEAD_MS = 1500;
const WARM_UP = 5000;
const WARM_UP_MS = 3000;
const A_DAY = 86_400_000;
const nothing = async () => {};
const now = () => performance.timeOrigin + performance.now();

export async function run(peer) {
  if (given.step === "install") {
    await peer.install();
    // One for tomorrow, from which others can be made in its likeness.
    await peer.add(-1, [now() + A_DAY]);
  } else {
    console.log(JSON.stringify(await measure(peer)));
  }
  process.exit(0);
}

async function measure(peer) {
  const late = await lateness(peer, given.rings, given.rings_seconds * 1000, given.patience * 1000);
  const { publish, close } = await publisher(given.amqp_url, given.queue);
  const acts = given.publishes.map((publishes) => (publishes ? publish : nothing));
  await rate(peer, 1_000_000, WARM_UP, acts[0], WARM_UP_MS);
  const rates = [];
  for (const act of acts) {
    const first = 2_000_000 + rates.length * 1_000_000;
    rates.push(await rate(peer, first, given.jobs, act, given.patience * 1000));
  }
  await close();
  return { rates, ...late, resident_mb: process.memoryUsage().rss / 2 ** 20 };
}

// Of these jobs, by their numbers. Others, which an earlier measurement left behind, count as handled, but are not waited
// for.
function handling(first, count, act) {
  const heardAt = new Map();
  let handled = 0;
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  const handle = async (number) => {
    await act();
    handled += 1;
    if (number < first || number >= first + count) return;
    heardAt.set(number, now());
    if (heardAt.size === count) finish();
  };
  const untilFinished = (ms) => Promise.race([finished, new Promise((resolve) => setTimeout(resolve, ms))]);
  return { heardAt, handle, untilFinished, handled: () => handled };
}

// Milliseconds of each; one that was not heard in time counts as late as it was by then, which is too little.
async function lateness(peer, count, ms, patience) {
  const { heardAt, handle, untilFinished } = handling(0, count, nothing);
  const stop = await peer.work(handle);
  const begin = now() + LEAD_MS;
  const dueAt = Array.from({ length: count }, (_, n) => begin + (n * ms) / count);
  await peer.add(0, dueAt);
  await untilFinished(LEAD_MS + ms + patience / 2);
  await stop();
  const end = now();
  return { late_ms: dueAt.map((due, number) => (heardAt.get(number) ?? end) - due), heard: heardAt.size };
}

async function rate(peer, first, count, act, patience) {
  await peer.add(first, Array(count).fill(now() - 1000));
  await settleDown();
  const { handle, untilFinished, handled } = handling(first, count, act);
  const cpu = process.cpuUsage();
  const began = now();
  const stop = await peer.work(handle);
  await untilFinished(patience);
  const { user, system } = process.cpuUsage(cpu);
  const [ended, jobs] = [now(), handled()];
  await stop();
  return {
    per_second: jobs / ((ended - began) / 1000),
    cpu_ms_per_1000: (user + system) / Math.max(jobs, 1),
    handled: jobs,
  };
}

async function settleDown() {
  const { Client } = load("pg");
  const client = new Client({ connectionString: given.database_url });
  await client.connect();
  await client.query("vacuum (analyze)");
  await client.query("checkpoint");
  await client.end();
}

// What every peer's handler does: one persistent message, confirmed. And the report that the benchmark reads.

import { createRequire } from "node:module";

const require = createRequire(`${process.env.PEERS}/`);
export const load = (name) => require(name);

const BODY = Buffer.from(JSON.stringify({ text: "x".repeat(250) }));

export async function publisher(amqpUrl, queue) {
  const connection = await load("amqplib").connect(amqpUrl);
  const channel = await connection.createConfirmChannel();
  const publish = () =>
    new Promise((resolve, reject) =>
      channel.sendToQueue(queue, BODY, { persistent: true }, (error) => (error ? reject(error) : resolve())),
    );
  return { publish, close: () => connection.close() };
}

export function stopwatch(count) {
  const cpu = process.cpuUsage();
  const began = performance.now();
  return () => {
    const seconds = (performance.now() - began) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    console.log(
      JSON.stringify({
        per_second: count / seconds,
        cpu_ms_per_1000: (user + system) / count,
        resident_mb: process.memoryUsage().rss / 2 ** 20,
      }),
    );
  };
}

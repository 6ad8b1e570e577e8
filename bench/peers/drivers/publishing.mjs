// What a peer's handler does where it publishes: one persistent message, confirmed.

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

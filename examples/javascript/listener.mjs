// Listens to what rings, and acts once per occurrence: node listener.mjs [queue] [topic]
//
// AMQP_URL     the broker; AMQP_PREFIX, if Duebell has one there
// What counts: a durable queue of your own, a bounded prefetch, the acknowledgement after the work, and the idempotency
// key. Ends with Ctrl-C; after a lost connection it starts afresh, and what was not acknowledged comes again.
import { setTimeout as sleep } from "node:timers/promises";
import amqp from "amqplib";

const PREFIX = process.env.AMQP_PREFIX ?? "";
const [queue = "my-app.javascript", topic = "reminders.#"] = process.argv.slice(2);
if (!process.env.AMQP_URL) {
  console.error("AMQP_URL is not set: amqp://user:password@host:5672/vhost");
  process.exit(2);
}
const KEYS_KEPT = 100_000;
const PREFETCH = 20;

// A real application keeps the keys where it keeps the effects, in the same transaction.
const seen = new Set();

async function handle(due) {
  console.log("rang", due.id, JSON.stringify(due.payload), due.idempotency_key);
  if (due.payload?.fail) throw new Error("told to fail");
}

async function receive(channel, message) {
  const due = JSON.parse(message.content);
  if (seen.has(due.idempotency_key)) {
    console.log("again", due.id, "is skipped");
    return channel.ack(message);
  }
  try {
    await handle(due);
  } catch (error) {
    // Given back once, in case the error was temporary; then to the dead-letter queue, for a person to look at.
    console.log("failed", due.id, error.message);
    await sleep(1000);
    return channel.nack(message, false, !message.fields.redelivered);
  }
  seen.add(due.idempotency_key);
  if (seen.size > KEYS_KEPT) seen.delete(seen.values().next().value);
  return channel.ack(message);
}

async function listen() {
  const connection = await amqp.connect(process.env.AMQP_URL);
  connection.on("error", () => {}); // "close" follows
  const closed = new Promise((resolve) => connection.on("close", resolve));
  try {
    const channel = await connection.createChannel();
    channel.on("error", (error) => console.error("channel:", error.message));
    const failed = `${queue}.failed`;
    await channel.assertExchange(failed, "fanout", { durable: true });
    // RabbitMQ 4 otherwise drops a message after 20 deliveries.
    const limits = { "x-queue-type": "quorum", "x-delivery-limit": 100000 };
    await channel.assertQueue(failed, { durable: true, arguments: limits });
    await channel.bindQueue(failed, failed, "");
    await channel.assertQueue(queue, {
      durable: true,
      // As the Python client declares its queues: the same name with other arguments is refused.
      arguments: {
        ...limits,
        "x-dead-letter-exchange": failed,
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
      },
    });
    await channel.bindQueue(queue, `${PREFIX}schedule.events`, `due.*.${topic}`);
    await channel.prefetch(PREFETCH);
    // A cancelled consumer (null: the queue was deleted) and a message that is no JSON end the connection: start afresh.
    const restart = (error) => {
      console.error("listening:", error.message);
      connection.close().catch(() => {});
    };
    await channel.consume(queue, (message) => {
      if (message === null) return restart(new Error("the queue is gone"));
      receive(channel, message).catch(restart);
    });
    console.log("listening on", queue);
    await closed;
  } finally {
    await connection.close().catch(() => {});
  }
}

while (true) {
  await listen().catch((error) => console.error("listening:", error.message));
  await sleep(1000);
}

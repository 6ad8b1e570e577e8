// A message in one second, with amqplib. AMQP_URL names the broker; AMQP_PREFIX, if Duebell has one there.
import amqp from "amqplib";

const EXCHANGE = "my-app.later.amqplib"; // an operator has run: duebell delay open my-app.later.amqplib
const DELAY_EXCHANGE = `${process.env.AMQP_PREFIX ?? ""}delay.${EXCHANGE}`;

const connection = await amqp.connect(process.env.AMQP_URL);
const deadline = setTimeout(() => {
  console.error("nothing came within 30 s");
  process.exit(1);
}, 30_000);

const channel = await connection.createConfirmChannel();
await channel.assertExchange(EXCHANGE, "topic", { durable: true });
await channel.assertQueue(EXCHANGE, { durable: true, arguments: { "x-queue-type": "quorum", "x-delivery-limit": 100_000 } });
await channel.bindQueue(EXCHANGE, EXCHANGE, "reminders.#");

const began = performance.now();
const received = new Promise((resolve) => channel.consume(EXCHANGE, resolve));
channel.publish(DELAY_EXCHANGE, "reminders.invoice", Buffer.from("pay the invoice"), {
  headers: { "x-delay": 1000 },
  messageId: "invoice-42",
  persistent: true,
  mandatory: true,
});
await channel.waitForConfirms();

const message = await received;
const after = ((performance.now() - began) / 1000).toFixed(3);
channel.ack(message);
console.log(`received: ${message.content}, after ${after} s, x-delay ${message.properties.headers["x-delay"]}`);
clearTimeout(deadline);
await connection.close();

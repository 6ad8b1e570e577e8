// Asks Duebell to ring, and waits for its verdict: node publisher.mjs <id> [seconds from now] [payload as JSON]
//
// AMQP_URL     the broker; AMQP_PREFIX, if Duebell has one there
// What counts: a confirm channel, `mandatory`, and a deadline. A command is sent when the broker has confirmed it and has
// not returned it. Without a confirm its fate is unknown: send it again, Duebell knows it by its id and revision.
import { randomUUID } from "node:crypto";
import amqp from "amqplib";

const PREFIX = process.env.AMQP_PREFIX ?? "";
const DEADLINE_MS = 30_000;

const [id, seconds = "2", payload = "null"] = process.argv.slice(2);
const problem = mistake();
if (problem) {
  console.error(problem);
  process.exit(2);
}

function mistake() {
  if (!id) return "usage: node publisher.mjs <id> [seconds from now] [payload as JSON]";
  if (!process.env.AMQP_URL) return "AMQP_URL is not set: amqp://user:password@host:5672/vhost";
  if (Number.isNaN(new Date(Date.now() + Number(seconds) * 1000).getTime())) return `not a number of seconds: ${seconds}`;
  try {
    JSON.parse(payload);
  } catch (error) {
    return `the payload is no JSON: ${error.message}`;
  }
}

function within(deadline, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing within ${deadline} ms`)), deadline);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function ask(channel, routingKey, type, command) {
  const { queue } = await channel.assertQueue("", { exclusive: true });
  const correlationId = randomUUID();
  const messageId = randomUUID(); // fresh for every try: it tells a returned message from its neighbours

  const reply = new Promise((resolve) => {
    channel.consume(
      queue,
      (message) => message?.properties.correlationId === correlationId && resolve(JSON.parse(message.content)),
      { noAck: true },
    );
  });
  const returned = new Promise((_, reject) => {
    channel.on("return", (message) => {
      if (message.properties.messageId === messageId) reject(new Error("no queue took it: is Duebell set up here?"));
    });
  });
  const confirmed = new Promise((resolve, reject) => {
    channel.publish(
      `${PREFIX}schedule.commands`,
      routingKey,
      Buffer.from(JSON.stringify(command)),
      {
        type,
        appId: "example.javascript", // the history of a job says who sent a command
        messageId,
        correlationId,
        replyTo: queue,
        contentType: "application/json",
        persistent: true,
        mandatory: true,
        timestamp: Math.floor(Date.now() / 1000),
      },
      (error) => (error ? reject(error) : resolve()),
    );
  });
  // The broker sends a return before the confirm, so a returned message never looks confirmed.
  await Promise.race([confirmed, returned]);
  return await Promise.race([reply, returned]);
}

async function main() {
  const connection = await within(DEADLINE_MS, amqp.connect(process.env.AMQP_URL), "connecting");
  connection.on("error", (error) => console.error("connection:", error.message));
  try {
    return await publish(connection);
  } finally {
    await connection.close();
  }
}

async function publish(connection) {
  const channel = await connection.createConfirmChannel();
  const command = {
    id,
    // The highest revision wins: the same id again replaces the schedule, or uses an id again that has ended. A command
    // that is sent again keeps its revision, and is a duplicate.
    revision: Date.now() * 1000,
    at: new Date(Date.now() + Number(seconds) * 1000).toISOString(),
    topic: "reminders.javascript",
    payload: JSON.parse(payload),
  };
  const verdict = await within(DEADLINE_MS, ask(channel, "schedule.request", "ScheduleRequest", command), "asking");
  console.log(verdict.outcome, verdict.id, verdict.next_run_at ?? "", verdict.errors.join("; "));
  // A duplicate is well if it is the same request again. If not, `errors` say what is otherwise: it will not ring.
  return verdict.outcome === "rejected" || verdict.errors.length ? 1 : 0;
}

process.exitCode = await main().catch((error) => {
  console.error(error.message);
  return 1;
});

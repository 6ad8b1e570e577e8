// A message in one second, with NestJS and @golevelup/nestjs-rabbitmq. AMQP_URL names the broker; AMQP_PREFIX, if
// Duebell has one there.
import "reflect-metadata";
import { AmqpConnection, RabbitMQModule, RabbitSubscribe } from "@golevelup/nestjs-rabbitmq";
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";

const EXCHANGE = "my-app.later.nestjs"; // an operator has run: duebell delay open my-app.later.nestjs
const DELAY_EXCHANGE = `${process.env.AMQP_PREFIX ?? ""}delay.${EXCHANGE}`;

interface Reminder {
  text: string;
  sentAt: number;
}

@Injectable()
class Reminders {
  done!: () => void;
  readonly received = new Promise<void>((resolve) => (this.done = resolve));

  constructor(private readonly amqp: AmqpConnection) {}

  async send(text: string): Promise<void> {
    const reminder: Reminder = { text, sentAt: Date.now() };
    await this.amqp.publish(DELAY_EXCHANGE, "reminders.invoice", reminder, {
      headers: { "x-delay": 1000 },
      messageId: "invoice-42",
      persistent: true,
    });
  }

  @RabbitSubscribe({
    exchange: EXCHANGE,
    routingKey: "reminders.#",
    queue: EXCHANGE,
    queueOptions: { durable: true, arguments: { "x-queue-type": "quorum", "x-delivery-limit": 100_000 } },
  })
  async receive(reminder: Reminder): Promise<void> {
    console.log(`received: ${reminder.text}, after ${(Date.now() - reminder.sentAt) / 1000} s`);
    this.done();
  }
}

@Module({
  imports: [
    RabbitMQModule.forRoot({
      uri: process.env.AMQP_URL!,
      // The delay exchange is not listed here: Nest would declare it.
      exchanges: [{ name: EXCHANGE, type: "topic", options: { durable: true } }],
      connectionInitOptions: { wait: true, timeout: 30_000 },
    }),
  ],
  providers: [Reminders],
})
class ReminderModule {}

const app = await NestFactory.createApplicationContext(ReminderModule, { logger: ["error", "warn"] });
await app.init();
const deadline = setTimeout(() => {
  console.error("nothing came within 30 s");
  process.exit(1);
}, 30_000);
const reminders = app.get(Reminders);
await reminders.send("pay the invoice");
await reminders.received;
clearTimeout(deadline);
await app.close();

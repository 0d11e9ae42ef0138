import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

async function main(): Promise<void> {
  const app = await NestFactory.create(AppModule.withUsersFrom(process.env.USERS ?? 'typeorm'), { logger: ['error', 'warn'] });
  app.enableShutdownHooks();
  await app.listen(Number(process.env.PORT), process.env.ADDRESS ?? '127.0.0.1');
}

void main();

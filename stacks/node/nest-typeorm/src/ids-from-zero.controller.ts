import { Controller, Get } from '@nestjs/common';
import { UserController } from './user.controller.js';
import type { UserRow } from './users.js';

/** Flawed on purpose: nobody has id 0, and nobody looks whether somebody was found. */
@Controller('user')
export class IdsFromZeroController extends UserController {
  @Get('random')
  override async random(): Promise<UserRow> {
    return (await this.users.byId(Math.floor(Math.random() * 100)))!;
  }
}

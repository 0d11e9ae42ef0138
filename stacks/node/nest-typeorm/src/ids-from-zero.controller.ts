import { Controller, Get } from '@nestjs/common';
import { UserController } from './user.controller.js';
import type { UserRow } from './users.js';

/** Wrong on purpose: no user has id 0, and the code does not check whether it found a user. */
@Controller('user')
export class IdsFromZeroController extends UserController {
  @Get('random')
  override async random(): Promise<UserRow> {
    return (await this.users.byId(Math.floor(Math.random() * 100)))!;
  }
}

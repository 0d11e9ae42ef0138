import { Controller, Get, Inject, NotFoundException, Param, ParseIntPipe } from '@nestjs/common';
import { USERS, type UserRow, type Users } from './users.js';

const LAST_ID = 100;

@Controller('user')
export class UserController {
  constructor(@Inject(USERS) protected readonly users: Users) {}

  @Get('all')
  all(): Promise<UserRow[]> {
    return this.users.all();
  }

  @Get('random')
  random(): Promise<UserRow> {
    return this.byId(1 + Math.floor(Math.random() * LAST_ID));
  }

  @Get(':id')
  async byId(@Param('id', ParseIntPipe) id: number): Promise<UserRow> {
    const user = await this.users.byId(id);
    if (user === null) {
      throw new NotFoundException();
    }
    return user;
  }
}

import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { User } from './user.entity.js';
import type { Users } from './users.js';

/** Reads users with TypeORM's repository. */
@Injectable()
export class TypeOrmUsers implements Users {
  constructor(@InjectRepository(User) private readonly users: Repository<User>) {}

  all(): Promise<User[]> {
    return this.users.find();
  }

  byId(id: number): Promise<User | null> {
    return this.users.findOneBy({ id });
  }
}

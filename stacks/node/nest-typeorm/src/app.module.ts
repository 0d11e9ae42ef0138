import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { IdsFromZeroController } from './ids-from-zero.controller.js';
import { PreparedUsers } from './prepared-users.js';
import { TypeOrmUsers } from './typeorm-users.js';
import { User } from './user.entity.js';
import { UserController } from './user.controller.js';
import { USERS } from './users.js';

const controllers = [process.env.USER_IDS === '0-99' ? IdsFromZeroController : UserController];

/** One server, or one for writes and several for reads, of which TypeORM draws one for each read. */
function servers() {
  const url = process.env.DATABASE_URL;
  const reads = process.env.DATABASE_READ_URLS?.split(' ');
  return reads === undefined ? { url } : { replication: { master: { url }, slaves: reads.map((read) => ({ url: read })) } };
}

@Module({})
export class AppModule {
  static withUsersFrom(source: string): DynamicModule {
    if (source === 'prepared') {
      return { module: AppModule, controllers, providers: [{ provide: USERS, useClass: PreparedUsers }] };
    }
    return {
      module: AppModule,
      imports: [
        TypeOrmModule.forRoot({
          type: 'postgres',
          ...servers(),
          poolSize: Number(process.env.DB_POOL),
          entities: [User],
          synchronize: false,
          logging: false,
        }),
        TypeOrmModule.forFeature([User]),
      ],
      controllers,
      providers: [{ provide: USERS, useClass: TypeOrmUsers }],
    };
  }
}

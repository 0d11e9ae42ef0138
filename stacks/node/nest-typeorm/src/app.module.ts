import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { PreparedUsers } from './prepared-users.js';
import { TypeOrmUsers } from './typeorm-users.js';
import { User } from './user.entity.js';
import { UserController } from './user.controller.js';
import { USERS } from './users.js';

@Module({})
export class AppModule {
  static withUsersFrom(source: string): DynamicModule {
    if (source === 'prepared') {
      return { module: AppModule, controllers: [UserController], providers: [{ provide: USERS, useClass: PreparedUsers }] };
    }
    return {
      module: AppModule,
      imports: [
        TypeOrmModule.forRoot({
          type: 'postgres',
          url: process.env.DATABASE_URL,
          poolSize: Number(process.env.DB_POOL),
          entities: [User],
          synchronize: false,
          logging: false,
        }),
        TypeOrmModule.forFeature([User]),
      ],
      controllers: [UserController],
      providers: [{ provide: USERS, useClass: TypeOrmUsers }],
    };
  }
}

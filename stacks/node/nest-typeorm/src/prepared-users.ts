import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import pg from 'pg';
import type { UserRow, Users } from './users.js';

/** Reads users with node-postgres only. Every connection prepares each named statement once. */
@Injectable()
export class PreparedUsers implements Users, OnModuleDestroy {
  private readonly pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: Number(process.env.DB_POOL) });

  async all(): Promise<UserRow[]> {
    const found = await this.pool.query<UserRow>({ name: 'all', text: 'SELECT id, name, email FROM users' });
    return found.rows;
  }

  async byId(id: number): Promise<UserRow | null> {
    const found = await this.pool.query<UserRow>({ name: 'by-id', text: 'SELECT id, name, email FROM users WHERE id = $1', values: [id] });
    return found.rows[0] ?? null;
  }

  async onModuleDestroy(): Promise<void> {
    await this.pool.end();
  }
}

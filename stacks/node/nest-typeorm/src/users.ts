/** A source of users. */
export const USERS = Symbol('USERS');

export interface UserRow {
  id: number;
  name: string;
  email: string;
}

export interface Users {
  all(): Promise<UserRow[]>;
  byId(id: number): Promise<UserRow | null>;
}

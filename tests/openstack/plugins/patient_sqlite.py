"""Lets threads share an SQLite database.

oslo.db begins every transaction as a reader. One that reads first and then writes while another writes is told
"database is locked" at once, whatever the timeout: SQLite cannot turn a reader with an old view into a writer. So
the transactions of writers begin as writers, and wait for their turn.
"""
from oslo_db.sqlalchemy import enginefacade
from sqlalchemy import event
from sqlalchemy.engine import Engine

_plain_session = enginefacade._TransactionFactory._create_session


def _session(self, mode, bind=None):
    session = _plain_session(self, mode, bind)
    if mode is enginefacade._WRITER:
        session.bind = session.bind.execution_options(begin_with='BEGIN IMMEDIATE')
    return session


enginefacade._TransactionFactory._create_session = _session


@event.listens_for(Engine, 'before_cursor_execute', retval=True)
def _begin(connection, cursor, statement, parameters, context, executemany):
    if statement == 'BEGIN':
        statement = connection.get_execution_options().get('begin_with', statement)
    return statement, parameters


@event.listens_for(Engine, 'connect')
def _connect(connection, record):
    # What a crash loses here nobody misses.
    connection.execute('PRAGMA journal_mode = WAL')
    connection.execute('PRAGMA synchronous = OFF')

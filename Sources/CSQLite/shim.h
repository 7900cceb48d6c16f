/* The parts of SQLite that are used. */
#include <sqlite3.h>

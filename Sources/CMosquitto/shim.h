/* The parts of libmosquitto that are used. */
#include <mosquitto.h>

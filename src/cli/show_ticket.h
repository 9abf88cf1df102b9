/* show_ticket.h - what pare ticket was asked, what it made, and how it says so. */
#ifndef PARE_SRC_CLI_SHOW_TICKET_H
#define PARE_SRC_CLI_SHOW_TICKET_H
#include "cut_data.h"

/* A quantiser that has as many bytes. */
typedef struct rounded {
    double bits, measured, error; /* measured nan: there is none */
    bool has_metric;
    evaluation metric;
} rounded;

typedef struct ticket_opts {
    size_t mode, method, coding, split;
    double scale;         /* 0: chosen */
    const char *required; /* "EPS,P": no ticket, only how wide one must be; or NULL */
    pare_ticket_opts cut;
    cut_data d;
    reduction r;
    pare_ticket_report report;
    double error;       /* of the outputs, relative, on what is held out */
    rounded plain, fed; /* fed: with the feedback of the ticket, where it has some */
} ticket_opts;

/* --required (ticket_required.c) */
PARE_MUST_USE pare_status ticket_required(cli *c, const ticket_opts *o);

/* self: ticket_opts */
void show_ticket(const cli *c, const pare_model *m, const void *self);
PARE_MUST_USE pare_status show_ticket_json(cli *c, const void *self);
#endif

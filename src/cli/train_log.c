/* train_log.c - the log of a training run (train.h): a CSV that is written line by line, so that it
 * can be watched and survives whatever happens to the run. No times: same command, same seed, same
 * lines. After a --resume the steps since the checkpoint stand there twice, with the same
 * numbers. */
#include "train.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST   "# pare train log 1\n"
#define COLUMNS "setting,run,step,loss,lr,norm,val,test,best\n"

/* Cuts off a last line that was not finished. *headed: the lines of the header are there. A file
 * that is something else is left alone. */
static pare_status repair_log(cli *c, const char *path, bool *headed)
{
    char *text = NULL;
    size_t n = 0;
    const pare_mark mark = pare_arena_mark(c->arena);
    const pare_status st = pare_text_read(&text, &n, c->arena, path, &c->err);
    if (st) return st;
    const size_t all = n;
    const bool ours = strncmp(text, FIRST, strlen(FIRST)) == 0;
    *headed = ours && strstr(text, COLUMNS);
    if (n > 0 && !ours)
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "--log %s is not a log of pare train that could be continued", path);
    while (n > 0 && text[n - 1] != '\n') n--;
    pare_arena_reset(c->arena, mark);
    if (n == all || truncate(path, (off_t)n) == 0) return PARE_OK;
    return pare_fail(&c->err, PARE_ERR_IO, "%s: %s", path, strerror(errno));
}

/* A new file with its header; all ranks append to it afterwards. */
static pare_status create_log(const training *tr, const char *path)
{
    const pare_task *l = training_task(tr, 0);
    FILE *const to = fopen(path, "w");
    if (!to) return pare_fail(&tr->c->err, PARE_ERR_IO, "%s: %s", path, strerror(errno));
    fprintf(to, FIRST "# command: %s\n", tr->c->line);
    fprintf(to, "# seed: %llu\n# metric: %s, %s is better\n", (unsigned long long)tr->c->seed,
            l->metric, l->more_is_better ? "more" : "less");
    for (size_t s = 0; s < tr->settings; s++)
        fprintf(to, "# setting %zu: lr %g, %llu steps\n", s, tr->setting[s].lr,
                (unsigned long long)training_steps(tr, s));
    fputs(COLUMNS, to);
    if (fclose(to) == 0) return PARE_OK;
    return pare_fail(&tr->c->err, PARE_ERR_IO, "%s: %s", path, strerror(errno));
}

pare_status log_open(training *tr)
{
    const char *path = tr->o->log;
    pare_status st = PARE_OK;
    if (!path) return PARE_OK;
    if (pare_ranks_rank(tr->ranks) == 0) {
        bool headed = false;
        if (tr->o->resume && pare_file_exists(path)) st = repair_log(tr->c, path, &headed);
        if (!st && !headed) st = create_log(tr, path);
    }
    if (st) return st;
    tr->log = fopen(path, "a");
    return tr->log ? PARE_OK : pare_fail(&tr->c->err, PARE_ERR_IO, "%s: %s", path, strerror(errno));
}

pare_status log_close(training *tr)
{
    if (!tr->log) return PARE_OK;
    const bool written = ferror(tr->log) == 0, closed = fclose(tr->log) == 0;
    tr->log = NULL;
    if (written && closed) return PARE_OK;
    return pare_fail(&tr->c->err, PARE_ERR_IO, "%s: not every line could be written", tr->o->log);
}

/* nan is an empty cell. */
static const char *csv_cell(char cell[32], double v)
{
    cell[0] = '\0';
    if (!isnan(v)) snprintf(cell, 32, "%.9g", v);
    return cell;
}

void log_step(void *self, const pare_train_log *l)
{
    run_progress *run = self;
    training *tr = run->training;
    cli *c = tr->c;
    const bool scored = !isnan(l->val);
    if (tr->log) {
        char loss[32], norm[32], val[32], test[32];
        fprintf(tr->log, "%zu,%zu,%llu,%s,%.9g,%s,%s,%s,%d\n", run->at, run->run,
                (unsigned long long)l->step, csv_cell(loss, l->loss), l->lr,
                csv_cell(norm, l->norm), csv_cell(val, l->val), csv_cell(test, l->test), l->best);
        fflush(tr->log); /* whole lines: another rank may write to the same file */
    }
    if (l->step > run->step) tr->done += l->step - run->step;
    /* Steps of an earlier process are no work of this one: the time left is not told by them. */
    if (run->step == 0 && l->step > 1 && c->bar.begun)
        c->bar.first += TRAIN_SHARE / 100.0 * (double)(l->step - 1) / (double)tr->total;
    run->step = l->step;
    if (scored) tr->last_score = l->val;
    const char *metric = training_task(tr, run->run)->metric;
    if (isnan(tr->last_score))
        snprintf(c->bar.note, sizeof c->bar.note, "loss %.4g", l->loss);
    else
        snprintf(c->bar.note, sizeof c->bar.note, "loss %.4g  %s %.4f", l->loss, metric,
                 tr->last_score);
    if (pare_ranks_rank(tr->ranks) != 0) return;
    const pare_status st = pare_progress(
        &c->exec, "training", tr->done < tr->total ? tr->done : tr->total, tr->total, NULL);
    (void)st; /* the run looks at the flag itself, between two steps */
    if (c->verbose && scored)
        cli_note(c, "run %zu step %llu/%llu: loss %.6g, %s %.6f%s", run->run,
                 (unsigned long long)l->step, (unsigned long long)l->steps, l->loss, metric, l->val,
                 l->best ? ", the best so far" : "");
}

void log_poly(void *self, size_t block, const pare_poly_use *use)
{
    const run_progress *run = self;
    const uint64_t all = use->polynomial + use->exact;
    if (all > 0)
        cli_note(run->training->c,
                 "block %zu: polynomial attention in %.3g %% of its passes; last: %s", block,
                 100.0 * (double)use->polynomial / (double)all, use->why);
}

/* The log of a training run: a CSV that is written line by line, so that it can be watched and
 * survives whatever happens to the run. No times: same command, same seed, same lines. After a
 * --resume the steps since the checkpoint stand there twice, with the same numbers. */
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
static pare_status mend(cli *c, const char *path, bool *headed)
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

static void put_header(const plan *p)
{
    const pare_lesson *l = plan_lesson(p, 0);
    fprintf(p->log, FIRST "# command: %s\n", p->c->line);
    fprintf(p->log, "# seed: %llu\n# metric: %s, %s is better\n", (unsigned long long)p->c->seed,
            l->metric, l->more_is_better ? "more" : "less");
    for (size_t s = 0; s < p->settings; s++)
        fprintf(p->log, "# setting %zu: lr %g, %llu steps\n", s, p->setting[s].lr,
                (unsigned long long)plan_steps(p, s));
    fputs(COLUMNS, p->log);
}

/* A new file with its header; all ranks append to it afterwards. */
static pare_status begin(plan *p, const char *path)
{
    p->log = fopen(path, "w");
    if (p->log) put_header(p);
    const bool bad = !p->log || fclose(p->log) != 0;
    p->log = NULL;
    return bad ? pare_fail(&p->c->err, PARE_ERR_IO, "%s: %s", path, strerror(errno)) : PARE_OK;
}

pare_status log_open(plan *p)
{
    const char *path = p->o->log;
    pare_status st = PARE_OK;
    if (!path) return PARE_OK;
    if (pare_ranks_rank(p->ranks) == 0) {
        bool headed = false;
        if (p->o->resume && pare_file_exists(path)) st = mend(p->c, path, &headed);
        if (!st && !headed) st = begin(p, path);
    }
    if (st) return st;
    p->log = fopen(path, "a");
    return p->log ? PARE_OK : pare_fail(&p->c->err, PARE_ERR_IO, "%s: %s", path, strerror(errno));
}

pare_status log_close(plan *p)
{
    if (!p->log) return PARE_OK;
    const bool bad = ferror(p->log) != 0;
    const bool worse = fclose(p->log) != 0;
    p->log = NULL;
    if (!bad && !worse) return PARE_OK;
    return pare_fail(&p->c->err, PARE_ERR_IO, "%s: not every line could be written", p->o->log);
}

/* nan is an empty cell. */
static void put_number(char cell[32], double v)
{
    if (isnan(v))
        cell[0] = '\0';
    else
        snprintf(cell, 32, "%.9g", v);
}

static void put_line(FILE *to, const run_line *who, const pare_train_log *l)
{
    char loss[32], norm[32], val[32], test[32];
    put_number(loss, l->loss);
    put_number(norm, l->norm);
    put_number(val, l->val);
    put_number(test, l->test);
    fprintf(to, "%zu,%zu,%llu,%s,%.9g,%s,%s,%s,%d\n", who->at, who->run,
            (unsigned long long)l->step, loss, l->lr, norm, val, test, l->best);
    fflush(to); /* whole lines: another rank may write to the same file */
}

void log_step(void *self, const pare_train_log *l)
{
    run_line *who = self;
    plan *p = who->plan;
    cli *c = p->c;
    const bool scored = !isnan(l->val);
    if (p->log) put_line(p->log, who, l);
    if (l->step > who->step) p->done += l->step - who->step;
    /* Steps of an earlier process are no work of this one: the time left is not told by them. */
    if (who->step == 0 && l->step > 1 && c->bar.begun)
        c->bar.first += TRAIN_SHARE / 100.0 * (double)(l->step - 1) / (double)p->total;
    who->step = l->step;
    if (scored) p->last_score = l->val;
    const char *metric = plan_lesson(p, who->run)->metric;
    if (isnan(p->last_score))
        snprintf(c->bar.note, sizeof c->bar.note, "loss %.4g", l->loss);
    else
        snprintf(c->bar.note, sizeof c->bar.note, "loss %.4g  %s %.4f", l->loss, metric,
                 p->last_score);
    if (pare_ranks_rank(p->ranks) != 0) return;
    const pare_status st = pare_progress(&c->exec, "training",
                                         p->done < p->total ? p->done : p->total, p->total, NULL);
    (void)st; /* the run looks at the flag itself, between two steps */
    if (c->verbose && scored)
        cli_note(c, "run %zu step %llu/%llu: loss %.6g, %s %.6f%s", who->run,
                 (unsigned long long)l->step, (unsigned long long)l->steps, l->loss, metric, l->val,
                 l->best ? ", the best so far" : "");
}

void log_poly(void *self, size_t block, const pare_poly_use *use)
{
    const run_line *who = self;
    const uint64_t all = use->polynomial + use->exact;
    if (all > 0)
        cli_note(who->plan->c, "block %zu: polynomial attention in %.3g %% of its passes; last: %s",
                 block, 100.0 * (double)use->polynomial / (double)all, use->why);
}

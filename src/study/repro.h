/* repro.h - what showing and drawing share. */
#ifndef PARE_SRC_STUDY_REPRO_H
#define PARE_SRC_STUDY_REPRO_H
#include <pare/repro.h>

/* Bins that all series of one data set share, so that their histograms can be laid on one another
 * (repro_figure.c). */
typedef struct histogram {
    size_t bins;
    double from, width;
} histogram;
histogram histogram_of(const pare_repro *r, size_t series);
double histogram_edge(const histogram *h, size_t bin);
size_t histogram_count(const histogram *h, const pare_repro_series *s, size_t bin);
#endif

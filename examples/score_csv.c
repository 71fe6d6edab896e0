/* Score the rows of a CSV file with a generated header.

   quadric export iris.quadric model.h
   cc -std=c99 -O2 score_csv.c -o score_csv -lm
   ./score_csv < iris.csv

   The first line has the names of the columns. The columns of the model come first, in order. A row
   that is not complete gets the label "?". */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

int main(void) {
  static char line[65536];
  double x[MODEL_INPUTS], p[MODEL_CLASSES];
  if (fgets(line, sizeof line, stdin) == NULL) return 1; /* the names of the columns */
  while (fgets(line, sizeof line, stdin) != NULL) {
    const char *at = line;
    for (int i = 0; i < MODEL_INPUTS; i++) {
      char *end;
      x[i] = strtod(at, &end);
      if (end == at) x[i] = NAN; /* an empty cell */
      at = end + strcspn(end, ",\n");
      if (*at == ',') at++;
    }
    const int label = model_label(x);
    if (label < 0) {
      puts("?");
    } else {
      model_probabilities(x, p);
      printf("%s,%.6f\n", model_class(label), p[label]);
    }
  }
  return 0;
}

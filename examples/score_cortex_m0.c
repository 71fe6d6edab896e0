/* The label of a row on a microcontroller without a floating-point unit.

   In Python: Path("model.h").write_text(generate(model, "c", arithmetic="int32", X=X))
   arm-none-eabi-gcc -std=c99 -Os -mcpu=cortex-m0 -mthumb -c score_cortex_m0.c
   arm-none-eabi-size score_cortex_m0.o */
#include "model.h"

/* The sensors' values times 2 to the power of the shifts in model_fixed. */
extern volatile int32_t sensors[MODEL_INPUTS];

int read_label(void);

int read_label(void) {
  int32_t x[MODEL_INPUTS];
  for (int i = 0; i < MODEL_INPUTS; i++) x[i] = sensors[i];
  return model_label(x);
}

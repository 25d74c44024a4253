#!/bin/bash
# What this task finds on its desktop.
printf 'Dear Charles,\nthe engine works.\n' >/root/letter.txt

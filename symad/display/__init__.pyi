from symad.display import html as html, latex as latex, terminal as terminal
